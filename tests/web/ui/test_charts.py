"""Charts: their contents and limits."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from web.ui.charts import fleet, indicators, series_charts
from web.ui.svg import BarPart, SliceSpan, format_coordinate

SHARES = st.lists(st.floats(0, 1000), max_size=8)


def widths(markup: str) -> list[float]:
    return [float(w) for w in re.findall(r'width="([\d.]+)%"', markup)]


def test_a_glyph_shows_the_slices_at_their_placement() -> None:
    drawn = indicators.slice_glyph(4, 4, label="3g.71gb")
    assert re.findall(r'class="slice-(cell|held)"', drawn) == ["cell"] * 4 + ["held"] * 4
    assert 'aria-label="3g.71gb: memory slices 4 to 7 of 8"' in drawn


def test_a_lease_without_a_placement_has_an_empty_glyph() -> None:
    assert "no slice held" in indicators.slice_glyph(None, 0)


@given(SHARES, st.floats(0, 4000))
def test_no_bar_grows_beyond_its_track(amounts: list[float], total: float) -> None:
    drawn = indicators.share_bar([BarPart("fill", amount) for amount in amounts], total)
    starts = [float(x) for x in re.findall(r'x="([\d.]+)%"', drawn)]
    assert all(x + w <= 100.06 for x, w in zip(starts, widths(drawn)[1:], strict=False))


def test_a_missing_sample_is_a_gap_and_not_a_zero() -> None:
    drawn = indicators.sparkline([50, 50, None, 50, 50])
    assert drawn.count("<polyline") == 2
    assert "24" not in re.findall(r",(\d+)", drawn)


def test_a_series_that_ends_in_a_gap_has_no_end_dot() -> None:
    assert "<circle" not in indicators.sparkline([50, None])
    assert indicators.sparkline([]).count("<circle") == 0


def test_a_ring_above_its_limit_is_at_most_one_full_turn() -> None:
    drawn = indicators.budget_ring(150, 100, 20, 300, title="150 %", note="day 3 of 30", label="")
    lengths = [float(x) for x in re.findall(r'stroke-dasharray="([\d.]+)', drawn)]
    assert sum(lengths) <= indicators.RING_CIRCUMFERENCE + 0.01


def test_text_in_drawings_is_escaped() -> None:
    evil = '"><script>'
    gpu = fleet.MapGpu("/x", evil, (SliceSpan(0, 8, "sold"),))
    for drawn in (
        indicators.gpu_drawing([SliceSpan(0, 8, "own-slice", evil)], label=evil),
        indicators.share_bar([BarPart(evil, 1)], 1, label=evil),
        indicators.wait_line(0, 1, (evil, evil, evil), evil),
        fleet.fleet_map([fleet.MapCluster(evil, evil, (fleet.MapNode(evil, (gpu,)),))], evil),
    ):
        assert "<script" not in drawn
        ElementTree.fromstring(drawn)


@pytest.mark.parametrize(("top", "highest"), [(0, 1), (7, 8), (126, 150), (100, 100), (300_000, 300_000), (0.4, 0.4)])
def test_an_axis_ends_at_a_round_value_above_the_largest_one(top: float, highest: float) -> None:
    values = series_charts.axis_values(top)
    assert values[0] == 0
    assert values[-1] == pytest.approx(highest)
    assert values[-1] >= top
    assert len(values) <= 6


def test_stacked_bars_do_not_overlap_and_stay_inside_the_chart() -> None:
    columns = [
        series_charts.ChartColumn("1", (10, 20, 30)),
        series_charts.ChartColumn("2", expected=50, low=40, high=90),
    ]
    drawn = series_charts.stacked_bars(columns, ["series-1", "series-2", "series-3"], str, label="spend", now_at=1)
    tops = [float(y) for y in re.findall(r'<rect class="series-\d[^"]*" x="[\d.]+" y="([\d.]+)"', drawn)]
    assert tops[0] > tops[1] > tops[2] >= series_charts.TOP
    assert drawn.count('class="whisker"') == 1


def test_charts_without_data_are_valid_xml() -> None:
    ElementTree.fromstring(series_charts.stacked_bars([], [], str, label="nothing yet"))
    ElementTree.fromstring(
        series_charts.running_total_chart(series_charts.RunningTotal(done=()), str, label="nothing yet")
    )


def block(gpus: int) -> fleet.MapCluster:
    gpu = fleet.MapGpu("/ops/gpus/g", "gpu", (SliceSpan(0, 4, "sold"), SliceSpan(4, 4, "idle")))
    return fleet.MapCluster("north-1", "H200", (fleet.MapNode("n01", (gpu,) * gpus),))


def test_a_fleet_up_to_160_gpus_is_drawn_large_and_above_that_dense() -> None:
    assert 'height="22"' in fleet.fleet_map([block(160)], "fleet")
    dense = fleet.fleet_map([block(161)], "fleet")
    assert 'height="22"' not in dense
    assert dense.count('path class="sold"') == 1, "one line per state and node"


def test_a_large_map_has_one_tab_stop() -> None:
    drawn = fleet.fleet_map([block(3), block(30)], "fleet")
    assert drawn.count('tabindex="0"') == 1
    assert drawn.count("<a ") == 33


def test_a_dense_map_links_to_nodes_and_labels_their_gpus() -> None:
    whole = (SliceSpan(0, 8, "sold"),)
    gpus = (
        *(fleet.MapGpu("", "", whole, index=n, summary="8/8") for n in range(200)),
        fleet.MapGpu("", "", (), index=201, summary="0/8, unhealthy", ill=True),
        fleet.MapGpu("", "", (SliceSpan(0, 4, "reserved"),), index=202, summary="0/8", current=True),
    )
    row = fleet.MapNode("n<1>", gpus, "/ops/nodes/nod_1/", "north-1 n<1>")
    drawn = fleet.fleet_map([fleet.MapCluster("north-1", "H200", (row,))], "fleet")
    assert 'href="/ops/nodes/nod_1/" aria-label="north-1 n&lt;1&gt;" data-gpus="0:8/8;1:8/8;' in drawn
    assert '201:0/8, unhealthy;202:0/8"' in drawn
    assert '<rect class="gpu-outline unhealthy" x="5799"' in drawn
    assert '<rect class="gpu-outline selected" x="5828"' in drawn
    assert '<path class="reserved" d="M5829 2h12.4"/>' in drawn


def test_slices_of_dense_gpus_are_drawn_at_their_position() -> None:
    cut = fleet.MapGpu("", "", (SliceSpan(0, 2, "sold"), SliceSpan(4, 4, "sold"), SliceSpan(3, 1, "fragmented")))
    whole = fleet.MapGpu("", "", (SliceSpan(0, 4, "sold"),), cells=4)
    drawn = fleet.dense_node(fleet.MapNode("n01", (cut, whole)))
    assert '<path class="free" d="M0 5.5h55"/>' in drawn
    assert '<path class="sold" d="M0 5.5h5.9m7.1 0h12.4m3.6 0h26"/>' in drawn
    assert '<path class="fragmented" d="M9.8 9.5h2.6"/>' in drawn


@given(st.floats(-1e6, 1e6))
def test_a_formatted_coordinate_is_within_half_a_hundredth(value: float) -> None:
    assert float(format_coordinate(value)) == pytest.approx(value, abs=0.0051)
