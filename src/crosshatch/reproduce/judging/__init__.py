"""From rows to a verdict: functions of numbers, nothing is run or read here."""
