"""Detection of credentials in environment variables, by their names and within their values."""

import re
from collections.abc import Iterator
from urllib.parse import unquote, unquote_plus


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


CREDENTIAL_WORDS = _words(
    "TOKEN TOKENS SECRET SECRETS PASSWORD PASSWORDS PASSWD PASSPHRASE PASS PWD KEY KEYS APIKEY APIKEYS CREDENTIAL"
    " CREDENTIALS CREDS AUTH PAT JWT BEARER COOKIE COOKIES WEBHOOK"
)
# Written without a separator, as in PGPASSWORD.
CREDENTIAL_ENDING = re.compile(
    r"(?:TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIALS|(?<!BY|OM|UR|ES)PASS"
    r"|(?:API|SSH|AUTH|ACCESS|ACCOUNT|PRIVATE|SECRET|LICENSE|SIGNING|ENCRYPTION)KEYS?)$"
)
CREDENTIAL_NAMES = frozenset({"DOCKER_AUTH_CONFIG"})
HARMLESS_NAMES = frozenset({"PWD", "OLDPWD"})  # directories
# The variable says something about a credential: where it is, how long it lasts, whether one is used.
DESCRIBING_LAST_WORDS = _words(
    "FILE PATH DIR URL URI ENDPOINT NAME TYPE METHOD MODE TTL LENGTH LEN LIMIT COUNT SIZE ENABLED DISABLED REQUIRED"
    " VERSION ALGORITHM HOST PORT SOCK EXPIRY TIMEOUT SECONDS PREFIX COLUMN FIELD HEADER SECOND"
)
FLAG_WORDS = frozenset({"USE", "ENABLE", "DISABLE", "SKIP", "REQUIRE", "NO", "HAS", "IS", "ALLOW", "WITH"})
# The word means something else beside one of these: tokens of language models, keys of tables, passes of training.
TEXT_TOKEN = _words("MAX PAD EOS BOS UNK SEP CLS MASK IMAGE AUDIO VIDEO STOP SPECIAL START END THINK PER")
TEXT_TOKENS = TEXT_TOKEN | _words(
    "MIN NEW NUM BATCH BATCHED INPUT OUTPUT PROMPT TOTAL CONTEXT COUNT DRAFT SPECULATIVE PREFILL DECODE IGNORE"
)
OTHER_MEANINGS = {
    "TOKEN": TEXT_TOKEN,
    "TOKENS": TEXT_TOKENS,
    "KEY": _words(
        "SORT PRIMARY FOREIGN PARTITION SHARD ROUTING PUBLIC GROUP CACHE LABEL IMAGE TEXT INPUT OUTPUT COLUMN INDEX"
        " METRIC"
    ),
    "PASS": frozenset({"FIRST", "SECOND", "ONE", "TWO", "NUM", "MULTI", "SINGLE", "MAX", "FORWARD", "BACKWARD"}),
}
OTHER_MEANINGS["KEYS"] = OTHER_MEANINGS["KEY"]
LAST_WORD_ONLY = frozenset({"AUTH", "PAT", "PASS"})
NAMES_WITH_URL = frozenset({"WEBHOOK"})  # whose URL is itself the credential

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", re.ASCII)
URL_LOGIN = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}://(?P<user>[^\s/?#:@]{0,255}):(?P<password>[^\s/?#]{1,500})@")
URL_TOKEN = re.compile(r"(?:https?|git)://(?P<token>[^\s/?#:@]{16,500})@")
ASSIGNED = re.compile(
    r"(?:^|[;\s?&])(?:password|passwd|pwd|secret|token|access_token|api_?key|accountkey|sharedaccesskey|sig)"
    r"=(?P<value>[^;&\s]{1,500})",
    re.IGNORECASE,
)
MAX_SEARCHED = 32 * 1024  # characters of a value


def looks_like_credential(name: str) -> bool:
    """Return whether a variable's name suggests that its value is a credential."""
    words = [word.upper() for word in WORD.findall(name)]
    whole = name.upper()
    if whole in CREDENTIAL_NAMES or whole in HARMLESS_NAMES or not words:
        return whole in CREDENTIAL_NAMES
    others = frozenset(words)
    if others & NAMES_WITH_URL:
        return True
    if words[-1] in DESCRIBING_LAST_WORDS or others & FLAG_WORDS:
        return False
    return any(_is_credential_word(word, others, is_last=word == words[-1]) for word in words)


def embedded_credentials(value: str) -> Iterator[str]:
    """Yield the passwords and tokens within a value, such as a database URL, also percent-decoded.

    References to other variables are none.
    """
    searched = value[:MAX_SEARCHED]
    for found in URL_LOGIN.finditer(searched):
        if not _is_reference(found["password"]):
            yield from dict.fromkeys((found["password"], unquote(found["password"])))
            if found["user"]:
                yield f"{found['user']}:{found['password']}"  # also when the password alone is too short to be found
    for found in (*URL_TOKEN.finditer(searched), *ASSIGNED.finditer(searched)):
        token = found[1]
        if not _is_reference(token):
            yield from dict.fromkeys((token, unquote_plus(token)))


def _is_credential_word(word: str, others: frozenset[str], *, is_last: bool) -> bool:
    if word in CREDENTIAL_WORDS:
        is_meant = not others & OTHER_MEANINGS.get(word, frozenset())
        return is_meant and (is_last or word not in LAST_WORD_ONLY)
    return CREDENTIAL_ENDING.search(word) is not None


def _is_reference(text: str) -> bool:
    return text.startswith(("$", "{", "<"))
