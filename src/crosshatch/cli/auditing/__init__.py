"""How audits are printed."""
