"""Which card, which slots: where a lease goes so that the most of every card can still be sold."""
