"""GPU of the experiments: an H100, partitioned into the six profiles of the mixes."""

from pathlib import Path

import broker
from broker.domain.geometry.gpu_models import load_models, model_named
from broker.domain.lifecycle.states import Isolation
from broker.domain.placement.costs.state_tables import EMPTY, build_state_table

ROOM = Path(broker.__file__).parent
MODEL = model_named(load_models((ROOM / "mig_geometry.json").read_text()), "H100-80GB")
NAMES = ("1g.10gb", "1g.20gb", "2g.20gb", "3g.40gb", "4g.40gb", "7g.80gb")
ONE, DOUBLE, TWO, THREE, FOUR, WHOLE = range(len(NAMES))
PROFILES = tuple(MODEL.profile(name, Isolation.HARDWARE) for name in NAMES)
WEIGHTS = tuple(profile.compute for profile in PROFILES)
TABLE = build_state_table(PROFILES, MODEL.grid)
COUNTED = build_state_table(PROFILES, MODEL.grid, counted=True)  # its states also say how many slices there are
FULL = TABLE.options[WHOLE][EMPTY][0].next_state
