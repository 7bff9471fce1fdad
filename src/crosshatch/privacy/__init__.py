"""Numbers that only one party can read, and that others can still add up and multiply by what they know."""
