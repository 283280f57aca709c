"""From tables to an `Evaluation`: who matched whom, every number that follows, and how it is kept and joined."""
