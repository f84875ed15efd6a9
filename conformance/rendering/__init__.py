"""Renderings of the report: HTML, Markdown, text, CTRF, SARIF."""
