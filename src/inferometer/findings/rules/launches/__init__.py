"""Rules that read single launches and the host calls behind them."""
