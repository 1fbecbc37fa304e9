"""Pictures of a flow: as text for mermaid, and as SVG."""

from __future__ import annotations

from collections.abc import Callable

from qmodel.client.flow_jobs import COLOURS, DASHES, FlowJobs, label


class Graph(FlowJobs):
    """The jobs of a flow and the edges between them, with pictures."""

    def mermaid(self) -> str:
        """Draw the flow as text for mermaid, which GitHub and other tools render."""
        names = {jid: f"j{at}" for at, jid in enumerate(self.nodes)}
        lines = ["flowchart LR"]
        for jid, node in self.nodes.items():
            said = "<br/>".join(_mermaid(one) for one in (node.klass, jid, node.state) if one)
            lines.append(f'  {names[jid]}["{said}"]:::{node.state}')
        for (one, other), edge in self.known().items():
            arrow = "-.->" if DASHES[edge.on_failure] else "-->"
            said = f'|"{_mermaid(label(edge))}"|' if label(edge) else ""
            lines.append(f"  {names[one]} {arrow}{said} {names[other]}")
        for state in dict.fromkeys(node.state for node in self.nodes.values()):
            lines.append(f"  classDef {state} fill:{COLOURS[state]},stroke:#495057,color:#212529")
        return "\n".join(lines) + "\n"

    def svg(self, link: Callable[[str], str] | None = None) -> str:
        """Draw the flow as SVG: boxes from left to right, an arrow from each job to the jobs that wait for it.

        `link` gives the address that the box of a job links to.
        """
        from qmodel.client.flow_graph_svg import draw

        return draw(self, link)


def _mermaid(text: str) -> str:
    """Escape text for quotes of mermaid, which writes HTML's entities with # in place of &."""
    return "".join(one if one.isalnum() or one in " -_.:()" else f"#{ord(one)};" for one in text)
