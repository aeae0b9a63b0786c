"""Files of a simulated box: a small tree in memory."""

import posixpath
from collections.abc import Mapping

MAX_FILES = 200
MAX_BYTES = 256 * 1024
MAX_PATH = 500
MAX_WORK = 2 * 1024 * 1024  # characters that one line may expand, parse and read
NO_SPACE = "No space left on device (a simulated box keeps 256 KiB)"


class BoxFileError(Exception):
    """A file operation failed; the text is what a shell would print."""


class BoxLimitExceeded(Exception):
    """A line runs, prints or stores more than a box imitates."""


class WorkLimit:
    """Counts the characters that a line expands, parses and reads."""

    def __init__(self) -> None:
        self._spent = 0

    def reset(self) -> None:
        """Begin a new line."""
        self._spent = 0

    def spend(self, amount: int) -> None:
        """Count an amount of work, or raise BoxLimitExceeded."""
        self._spent += amount
        if self._spent > MAX_WORK:
            raise BoxLimitExceeded


class BoxFiles:
    """Directories and text files by absolute path."""

    def __init__(self, texts: Mapping[str, str], limit: WorkLimit | None = None) -> None:
        self._limit = limit or WorkLimit()
        self._texts: dict[str, str] = {}
        self._directories = {"/"}
        for path, text in texts.items():
            self._add_directories(posixpath.dirname(path))
            self._texts[path] = text

    def is_directory(self, path: str) -> bool:
        """Return whether a directory exists at a path."""
        return path in self._directories

    def exists(self, path: str) -> bool:
        """Return whether anything exists at a path."""
        return path in self._directories or path in self._texts

    def names(self, path: str) -> list[str]:
        """Return the names in a directory, sorted; those of directories end with a slash."""
        if path in self._texts:
            return [posixpath.basename(path)]
        if path not in self._directories:
            raise BoxFileError("No such file or directory")
        directories = [f"{posixpath.basename(each)}/" for each in self._directories if self._is_child(each, path)]
        return sorted(directories + [posixpath.basename(each) for each in self._texts if self._is_child(each, path)])

    def read(self, path: str) -> str:
        """Return the text of a file."""
        if path == "/dev/null":
            return ""
        if path in self._directories:
            raise BoxFileError("Is a directory")
        if path not in self._texts:
            raise BoxFileError("No such file or directory")
        self._limit.spend(len(self._texts[path]))
        return self._texts[path]

    def write(self, path: str, text: str, *, append: bool = False) -> None:
        """Write a file, or append to it."""
        if path == "/dev/null":
            return
        if path in self._directories:
            raise BoxFileError("Is a directory")
        self._require_parent(path)
        before = self._texts.get(path, "")
        self._limit.spend(len(before) if append else 0)
        after = before + text if append else text
        if path not in self._texts:
            self._require_room_for_a_file()
        if self._bytes_used() - len(before.encode()) + len(after.encode()) > MAX_BYTES:
            raise BoxFileError(NO_SPACE)
        self._texts[path] = after

    def make_directory(self, path: str, *, parents: bool = False) -> None:
        """Create a directory; with `parents` also those above it."""
        if self.exists(path):
            if parents and path in self._directories:
                return
            raise BoxFileError("File exists")
        if not parents:
            self._require_parent(path)
        elif len(path) > MAX_PATH:
            raise BoxFileError("File name too long")
        self._require_room_for_a_file()
        self._add_directories(path)

    def remove(self, path: str, *, recursive: bool = False) -> None:
        """Delete a file, or with `recursive` a directory with everything in it."""
        if path in self._texts:
            del self._texts[path]
        elif path not in self._directories:
            raise BoxFileError("No such file or directory")
        elif not recursive:
            raise BoxFileError("Is a directory")
        elif path == "/":
            raise BoxFileError("It is dangerous to operate recursively on '/'")
        else:
            self._texts = {each: text for each, text in self._texts.items() if not each.startswith(f"{path}/")}
            self._directories = {each for each in self._directories if f"{each}/" != f"{path}/"}
            self._directories = {each for each in self._directories if not each.startswith(f"{path}/")}

    @staticmethod
    def _is_child(path: str, parent: str) -> bool:
        return path != "/" and posixpath.dirname(path) == parent

    def _require_parent(self, path: str) -> None:
        if len(path) > MAX_PATH:
            raise BoxFileError("File name too long")
        if posixpath.dirname(path) not in self._directories:
            raise BoxFileError("No such file or directory")

    def _require_room_for_a_file(self) -> None:
        if len(self._texts) + len(self._directories) >= MAX_FILES:
            raise BoxFileError(NO_SPACE)

    def _bytes_used(self) -> int:
        return sum(len(text.encode()) for text in self._texts.values())

    def _add_directories(self, path: str) -> None:
        while path not in self._directories:
            if path in self._texts:
                raise BoxFileError("Not a directory")
            self._directories.add(path)
            path = posixpath.dirname(path)
