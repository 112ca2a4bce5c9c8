"""The paper's own numbers, as printed. They are shown beside ours, marked "paper", with the errors found in them."""

from __future__ import annotations

METHODS = ("Conf.", "Fast.", "DUS", "STaRR")

# (data set, model): accuracy, tokens per second and speed-up of each method of Table 1
TABLE1: dict[tuple[str, str], tuple[tuple[float, ...], tuple[float, ...], tuple[float, ...]]] = {
    ("GSM8K", "LLaDA-8B"): ((78.2, 75.8, 72.1, 73.6), (5.3, 14.3, 14.3, 16.32), (1.0, 2.70, 2.70, 3.07)),
    ("GSM8K", "Dream-7B"): ((75.0, 74.2, 65.2, 75.0), (8.9, 14.1, 24.2, 0.44), (1.0, 1.58, 2.72, 3.41)),
    ("MBPP", "LLaDA-8B"): ((29.4, 28.4, 29.2, 28.2), (5.4, 22.4, 14.6, 48.1), (1.0, 4.15, 2.70, 8.90)),
    ("MBPP", "Dream-7B"): ((56.6, 53.8, 46.4, 57.2), (10.2, 30.2, 27.3, 0.32), (1.0, 2.96, 2.68, 2.91)),
    ("MATH500", "LLaDA-8B"): ((33.4, 33.4, 21.4, 35.1), (8.8, 23.2, 23.6, 32.91), (1.0, 2.63, 2.68, 3.74)),
    ("MATH500", "Dream-7B"): ((38.4, 37.9, 27.0, 37.9), (11.2, 27.1, 30.3, 40.9), (1.0, 2.42, 2.71, 3.65)),
    ("HumanEval", "LLaDA-8B"): ((40.8, 37.1, 13.2, 30.2), (16.0, 32.9, 15.2, 34.8), (1.0, 2.05, 0.97, 2.18)),
    ("HumanEval", "Dream-7B"): ((28.2, 49.2, 12.2, 29.7), (11.5, 15.6, 7.1, 21.9), (1.0, 1.35, 0.61, 1.90)),
}

# method, speed-up, accuracy on GSM8K with LLaDA-8B
TABLE2 = (("Confidence", 1.0, 79.2), ("STaRR w/o RO", 1.98, 79.2), ("STaRR w/ RO", 3.10, 83.1))
TABLE3 = (
    ("Confidence", 1.0, 79.21),
    ("STaRR Only", 3.10, 83.10),
    ("STaRR + dKV-Cache", 7.20, 79.21),
    ("STaRR + ICE", 10.30, 83.12),
    ("STaRR + dKV-Cache + ICE", 33.40, 83.10),
)
TABLE5 = (
    ("Confidence", 1.0, 79.21),
    ("STaRR", 3.10, 83.10),
    ("Block STaRR", 2.88, 79.21),
    ("Block STaRR + Dual Cache", 5.97, 78.13),
)

DOUBTS = {
    "table1": (
        "STaRR on GSM8K with LLaDA is 73.6 here, below both baselines and yet bold, and 83.1 in Tables 2, 3 and 5. "
        "Dream's 0.44 and 0.32 tokens per second contradict their speed-ups (30.3 and 29.7 would fit). "
        "The mean of the eight speed-ups is 3.72, not the 4.1 claimed. "
        "HumanEval with LLaDA falls from 40.8 to 30.2, which is not comparable accuracy."
    ),
    "table2": "The baseline is 79.2 here and 78.2 in Table 1; STaRR is 83.1 here and 73.6 there.",
    "table3": (
        "33.4 is more than the product of the parts (3.10 · 2.32 · 3.32 = 23.9); 79.21, 83.10 and 83.12 cannot occur "
        "with 1,319 questions; ICE's threshold, steps and lengths are not given, so its rows are not reproducible."
    ),
    "table5": "79.21, 83.10 and 78.13 cannot occur with 1,319 questions.",
    "sensitivity": "Best at W_t = 6 and W_n = 8 to 10 on 100 questions, where a point is one question.",
}
