"""`python -m billing.verify bundle.json`: check an invoice bundle."""

import sys

from billing.verify.verify import main

sys.exit(main(sys.argv[1:]))
