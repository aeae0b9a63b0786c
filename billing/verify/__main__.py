"""`python -m billing.verify bundle.json`."""

import sys

from billing.verify.verify import main

sys.exit(main(sys.argv[1:]))
