"""What `shortlist annotate status` prints."""

from collections.abc import Iterator
from typing import Any

WAYS = {"full": "full list", "search": "search", "shortlist": "shortlist"}


def status_lines(title: str, found: dict[str, Any]) -> Iterator[str]:
    """A line each on progress, time, agreement, the model's score, the compared ways of asking, and every annotator."""
    done, total = found["progress"]["done"], found["progress"]["total"]
    settled = f", {done:,} of {total:,} questions settled" if total > found["items"] else ""  # of several people each
    yield f"{title}: {found['items_done']:,} of {found['items']:,} items done{settled}"
    if found["hours"] is not None:
        yield f"  time spent: {_time(found['hours'])}"
    if found["agreement"]["pairs"]:
        yield f"  agreement: {found['agreement']['share']:.1%} of {found['agreement']['pairs']:,} pairs"
    if found["score"] is not None:
        yield f"  model: {_score(found['score'])}"
    yield from map(_way, found["ways"])
    for who in found["annotators"]:
        apart, gold = (" (without gold)", f", {_gold(who)}") if who["gold"] else ("", "")
        yield f"  {who['name']}: {who['answers']} answers, {who['nones']} None{apart}, {who['skips']} skipped{gold}"


def _gold(who: dict[str, Any]) -> str:
    return (
        f"gold {who['gold']} ({who['slips']} slips, {who['misses']} misses of {who['gold_shown']} shown, "
        f"{who['strays']} strays of {who['gold'] - who['gold_shown']} not shown)"
    )


def _time(hours: float) -> str:
    """The first hour in minutes: the first fifty answers would take 0.0 hours."""
    return f"{hours:.1f} hours" if hours >= 1 else f"{60 * hours:.0f} min"


def _score(score: dict[str, Any]) -> str:
    if score["early"]:
        if score["asked"] <= score["items"]:
            return f"too early to say, {score['items']} of {score['size']} sampled items are answered"
        why = f"{score['asked']} are answered, some after new or skipped ones, which are asked about next"
        return f"too early to say, {score['items']} of {score['size']} sampled items count so far: {why}"
    line = f"{score['accuracy']:.1%} right ({score['low']:.1%} to {score['high']:.1%}) by {score['items']} of "
    line += f"{score['size']} sampled items, {score['undecided']} undecided, after {score['answers']:,} answers"
    line += "" if score["corrected"] else ", answers taken as right"
    more = score["questions_for_a_point"]
    return line + ("" if more is None else f"; one point more: about {float(f'{more:.1g}'):,.0f} more questions")


def _way(way: dict[str, Any]) -> str:
    parts = [f"{way['labelled']} of {way['items']} items labelled"]
    if way["seconds"] is not None:
        parts.append("{value:.1f} s per labelled item ({low:.1f} to {high:.1f})".format(**way["seconds"]))
    if way["wrong"] is not None:
        parts.append(f"wrong on {way['gold']} gold items: " + _share(way["wrong"]))
    if way["taken"] is not None:
        places = [f"{one['taken']} of {one['shown']}" for one in way["by_place"]]
        parts.append(f"a wrong class taken: {_share(way['taken'])}, by place: {', '.join(places)}")
    return f"  by {WAYS[way['way']]}: " + "; ".join(parts)


def _share(estimate: dict[str, float]) -> str:
    return "{value:.1%} ({low:.1%} to {high:.1%})".format(**estimate)
