"""Pages, reports and exports of a run."""
