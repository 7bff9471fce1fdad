"""What the theorems are called, in bounds, in plans and by the algorithms they are about."""

FEDBCD = "FedBCD, Theorem 2"
ICASSP = "ICASSP, Theorem 4.1"
TDCD = "TDCD, Theorem 1"
HSGD = "HSGD, Theorem 1"
ABCD = "ABCD, our theorem"
