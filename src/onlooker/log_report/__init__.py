"""What a log tells about its learner, on one page: the verdict first, the figures behind it, how to use the policy."""

from onlooker.log_report.findings import Found, look_at
from onlooker.log_report.page import page_of, report_page, write_report
from onlooker.log_report.source import Input, Source

__all__ = ["Found", "Input", "Source", "look_at", "page_of", "report_page", "write_report"]
