"""Find out why a text classifier is wrong, tell it so, and prove that it listened."""
