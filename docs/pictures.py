"""Pictures of the tutorials: runs the code of each page, which writes its picture beside it."""

import os
import re
from pathlib import Path

HERE = Path(__file__).resolve().parent / "tutorials"


def main() -> None:
    """Run all pages in their folder; files of models that they leave are removed."""
    os.chdir(HERE)
    for page in sorted(HERE.glob("*.md")):
        text = page.read_text(encoding="utf-8")
        blocks = re.findall(r"^```python\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE)
        print(page.stem, flush=True)
        exec(compile("\n".join(blocks), page.name, "exec"), {"__name__": "__main__"})
    for left in HERE.glob("*.losse"):
        left.unlink()


if __name__ == "__main__":
    main()
