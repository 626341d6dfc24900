"""What scripts/report.py makes its page from: reports read, figures drawn, page put together."""
