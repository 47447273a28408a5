"""The page that people look at: one self-contained HTML document about one run."""

from discreet.report.page import run_page

__all__ = ["run_page"]
