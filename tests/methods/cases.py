"""Every method with each of its options, and its objective once more as plain loops."""

import math
from dataclasses import replace

import torch

import naive
from shortlist import methods
from shortlist.internal.tensors import single_process
from shortlist.labels import NONE
from shortlist.methods import Batch

CASES = {
    "ol": ("ol", {}),
    "ol ovr": ("ol", {"loss": "ovr_square"}),
    "sl total": ("sl", {}),
    "sl paper": ("sl", {"form": "paper"}),
    "sl cross entropy": ("sl", {"loss": "cross_entropy"}),
    "sl_unbiased relu": ("sl_unbiased", {}),
    "sl_unbiased abs": ("sl_unbiased", {"correction": "abs"}),
    "sl_unbiased none": ("sl_unbiased", {"correction": "none", "loss": "cross_entropy"}),
    "likelihood": ("likelihood", {}),
    "log": ("log", {}),
    "sl equal": ("sl", {"form": "equal"}),
    "exp": ("exp", {}),
    "cc": ("cc", {}),
    "rc": ("rc", {}),
    "proden": ("proden", {}),
    "lw sigmoid": ("lw", {}),
    "lw sigmoid beta 2": ("lw", {"beta": 2.0}),
    "lw cross entropy": ("lw", {"form": "cross_entropy", "beta": 2.0}),
    "propensity": ("propensity", {}),
    "propensity clipped": ("propensity", {"form": "clipped", "clip": 2.0, "loss": "ovr_square"}),
    "propensity normalised": ("propensity", {"form": "normalised"}),
    "teacher": ("teacher", {}),
    "teacher kept apart": ("teacher", {"temperature": 0.8, "pull": 0.3, "confident": 0.5, "ramp": 0.5, "memory": 0.0}),
    "teacher of a long memory": ("teacher", {"temperature": 0.8, "memory": 0.7}),
    "crdpll": ("crdpll", {}),
    "crdpll at once": ("crdpll", {"pull": 0.7, "ramp": 0.0}),
    "dirk": ("dirk", {}),
    "teacher, an epoch ago": ("teacher", {"pull": 0.6, "memory": 0.7, "fresh": False}),
}
SURE, PROGRESS = 4.0, 0.125
"""How many times the confidences a teacher's logits are; the share of the training that is done."""


def make(case: str) -> methods.Method:
    name, options = CASES[case]
    return methods.get(name, **options)


def batch(sample: naive.Sample, all_sum=single_process) -> Batch:
    given = {name: value for name, value in vars(sample).items() if name != "logits"}
    found = Batch(**given, all_sum=all_sum)
    progress = torch.full(sample.answer.shape[:-1], PROGRESS, dtype=torch.float64)
    return replace(found, teacher=SURE * sample.confidence, progress=progress)


def objective(case: str, sample: naive.Sample, all_sum=single_process) -> torch.Tensor:
    return make(case).objective(sample.logits, batch(sample, all_sum))


def naive_objective(case: str, sample: naive.Sample) -> float:
    name, options = CASES[case]
    logits, weight = sample.logits.double().tolist(), sample.weights()
    shown, answer = sample.labels()
    if name in ("ol", "sl", "sl_unbiased"):
        L = naive.losses(options.get("loss", "cross_entropy" if name == "ol" else "ovr_square"), logits)
        if name == "ol":
            kept = [w if s != NONE else 0.0 for w, s in zip(weight, answer, strict=True)]
            return naive.mean([row[s] for row, s in zip(L, answer, strict=True)], kept)
        if name == "sl_unbiased":
            return naive.nonnegative_risk(L, shown, answer, weight, options.get("correction", "relu"))
        if options.get("form") in ("paper", "equal"):
            prior = sample.prior.tolist() if options["form"] == "paper" else [1.0] * len(sample.prior)
            return naive.paper_risk(L, shown, answer, weight, prior)
        return naive.total_risk(L, shown, answer, weight)
    if name == "propensity":
        L = naive.losses(options.get("loss", "cross_entropy"), logits)
        return naive_propensity(options, L, answer, weight, sample.inclusion.tolist())
    values = []
    for i, f in enumerate(logits):
        C = naive.candidates(shown[i], answer[i])
        w = sample.confidence[i].double().tolist()
        values.append(item_objective(name, options, f, C, w))
    return naive.mean(values, weight)


def naive_propensity(options: dict, L: list, answer: list[int], weight: list[float], inclusion: list[float]) -> float:
    most = options.get("clip", math.inf)
    pi = [0.0 if s == NONE else min(1 / chance, most) for s, chance in zip(answer, inclusion, strict=True)]
    picked = [row[s] for row, s in zip(L, answer, strict=True)]
    if options.get("form") == "normalised":
        return naive.mean(picked, [w * p for w, p in zip(weight, pi, strict=True)])
    return naive.mean([p * value for p, value in zip(pi, picked, strict=True)], weight)


def item_objective(name: str, options: dict, f: list[float], C: list[int], w: list[float]) -> float:
    """One item: candidates C, their complement S, confidences w."""
    K, p, log_p = len(f), naive.softmax(f), naive.log_softmax(f)
    S = [k for k in range(K) if k not in C]
    inside = sum(p[k] for k in C)
    if name in ("cc", "likelihood"):
        return -naive.log_of_candidates(f, C)
    if name == "log":
        return -((K - 1) / len(S)) * naive.log_of_candidates(f, C)
    if name == "exp":
        return ((K - 1) / len(S)) * math.exp(-inside)
    if name in ("rc", "proden"):
        return -sum(w[k] * log_p[k] for k in range(K))
    if name == "crdpll":
        share = options.get("pull", 1.0) * (1.0 if options.get("ramp") == 0 else PROGRESS / 0.5)
        apart = sum(w[k] * (math.log(w[k]) - log_p[k]) for k in range(K) if w[k])
        return share * apart - sum(naive.log_of_candidates(f, [j for j in range(K) if j != k]) for k in S)
    if name == "dirk":
        r = rectified(naive.softmax([SURE * share for share in w]), C)
        return -sum(r[k] * log_p[k] for k in range(K))
    if name == "teacher":
        return taught(options, log_p, -naive.log_of_candidates(f, C), C, w)
    beta = options.get("beta", 1.0)
    if options.get("form", "sigmoid") == "sigmoid":
        ruled_out = sum(w[k] * naive.sigmoid(f[k]) for k in S)
        return sum(w[k] * naive.sigmoid(-f[k]) for k in C) + beta * ruled_out
    ruled_out = sum(w[k] * -naive.log_of_candidates(f, [j for j in range(K) if j != k]) for k in S)
    return sum(w[k] * -log_p[k] for k in C) + beta * ruled_out


def rectified(p: list[float], C: list[int]) -> list[float]:
    """DIRK's target as its authors compute it (https://github.com/wu-dd/DIRK, model.py); a single candidate is sure."""
    K = len(p)
    if len(C) == 1 or len(C) == K:
        return [p[k] / sum(p[j] for j in C) if k in C else 0.0 for k in range(K)]
    inside = sum(p[k] for k in C)
    part = [p[k] / inside if k in C else 0.0 for k in range(K)]
    rest = [0.0 if k in C else p[k] / (1 - inside) for k in range(K)]
    scaled = max(rest) / inside
    share = scaled / (scaled + min(part[k] for k in C))
    return [share * part[k] + (1 - share) * rest[k] for k in range(K)]


def taught(options: dict, log_p: list[float], likely: float, C: list[int], w: list[float]) -> float:
    """An item of the teacher: the likelihood, and as much of the cross entropy with q as the options say."""
    said = naive.softmax([SURE * w[k] / options.get("temperature", 1.0) for k in C])
    memory = options.get("memory", 0.5) if options.get("fresh", True) else 1.0
    q = [memory * share for share in w]
    for k, share in zip(C, said, strict=True):
        q[k] += (1 - memory) * share
    share = options.get("pull", 1.0) if max(q) >= options.get("confident", 0.0) else 0.0
    if options.get("ramp"):
        share *= min(1.0, PROGRESS / options["ramp"])
    return (1 - share) * likely - share * sum(q_k * log_p_k for q_k, log_p_k in zip(q, log_p, strict=True))


def as_type(sample: naive.Sample, dtype: torch.dtype) -> naive.Sample:
    return replace(sample, logits=sample.logits.to(dtype))
