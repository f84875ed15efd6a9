"""A strict reader of HTML: every element is closed, and nothing stands in it but what is known."""

from __future__ import annotations

from html.parser import HTMLParser

VOID = frozenset({"meta", "link", "input", "br", "path"})
ELEMENTS = """html head title style body a header footer main nav section div p span b u h1 h2 h3 h4 ul li dl dt dd
details summary table thead tbody tr th td code pre figure figcaption svg g text fieldset legend label"""
ATTRIBUTES = """lang charset http-equiv content name rel href id class tabindex role aria-label aria-labelledby
aria-hidden scope rowspan open type checked autocomplete width height viewbox preserveaspectratio d x y transform"""


class Page(HTMLParser):
    """Elements with their depth, ids, links, texts, and whatever is wrong."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.elements: list[tuple[int, str]] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.texts: list[str] = []
        self.faults: list[str] = []
        self.feed(text)
        self.close()
        self.faults += [f"{tag} is not closed" for tag in self.open]

    @property
    def text(self) -> str:
        """All texts, in order."""
        return "".join(self.texts)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.elements.append((len(self.open), tag))
        if tag not in VOID | set(ELEMENTS.split()):
            self.faults.append(f"unknown element {tag}")
        if unknown := set(given) - set(ATTRIBUTES.split()):
            self.faults.append(f"unknown attributes {unknown} of {tag}")
        if len(given) < len(attrs):
            self.faults.append(f"{tag} has an attribute twice")
        if given.get("id") is not None:
            self.ids.append(str(given["id"]))
        if given.get("href") is not None:
            self.links.append(str(given["href"]))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open[-1] != tag:
            self.faults.append(f"</{tag}> closes {self.open[-1:]}")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if self.open[-1:] != ["style"]:
            self.texts.append(data)

    def handle_comment(self, data: str) -> None:
        self.faults.append("a comment")

    def handle_pi(self, data: str) -> None:
        self.faults.append("a processing instruction")
