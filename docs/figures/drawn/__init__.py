"""How the figures of docs/measures are drawn: a function each, under the name of its measure."""
