"""The card of the experiments: an H100, cut into the six profiles that its mixes ask for."""

from pathlib import Path

import broker
from broker.domain.gpu_models import load_models, model_named
from broker.domain.placement.tables import EMPTY, table_of
from broker.domain.states import Isolation

ROOM = Path(broker.__file__).parent
MODEL = model_named(load_models((ROOM / "mig_geometry.json").read_text()), "H100-80GB")
NAMES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
ONE, DOUBLE, TWO, THREE, FOUR, WHOLE = range(len(NAMES))
PROFILES = tuple(MODEL.profile(name, Isolation.HARDWARE) for name in NAMES)
WEIGHTS = tuple(profile.compute for profile in PROFILES)
TABLE = table_of(PROFILES, MODEL.grid)
COUNTED = table_of(PROFILES, MODEL.grid, counted=True)  # its states also say how many slices there are
FULL = TABLE.moves[WHOLE][EMPTY][0].after
