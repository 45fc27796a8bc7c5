"""How the embedded model was taught its tags, and how another one can be: see README.md here."""
