"""A log in which every name is an attack on the page that shows it."""

import csv

import numpy as np

SCRIPT = '<script>document.title="pwned"</script>'
IMAGE = "\"><img src=x onerror=document.title='pwned'>"
ENDING = "</style></title></svg></code></pre><script>document.title='pwned'</script>"
LEVELS = ("plain", "<svg onload=document.title='pwned'>", "{{ 7 * 7 }}'\"`&lt;")
FILE = "<img src=x onerror=document.title='pwned'>.csv"
BY = "<b onmouseover=document.title='pwned'>shop"
SHOP = "<iframe src='javascript:document.title=1'>"
ROUND = "<script>document.title='pwned'</script> "
ARM = "<img src=arm onerror=document.title='pwned'> "


def write_hostile(folder, n_rounds=300, seed=0):
    """Write it as a long CSV; give its path and the options that read it."""
    rng = np.random.default_rng(seed)
    path = folder / FILE
    with open(path, "w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow([BY, "visit", "arm", "bought", SCRIPT, IMAGE, ENDING])
        for t in range(n_rounds):
            price, size = rng.normal(size=(2, 4))
            kinds = rng.integers(0, len(LEVELS), size=4)
            pick = int(np.argmax(price - 0.5 * size + 0.7 * kinds + 0.3 * rng.gumbel(size=4)))
            for a in range(4):
                values = [f"{price[a]:.9f}", f"{size[a]:.9f}", LEVELS[kinds[a]]]
                rows.writerow([SHOP, f"{ROUND}{t}", f"{ARM}{a}", int(a == pick), *values])
    return path, {"round": "visit", "chosen": "bought", "arm": "arm", "features": [SCRIPT, IMAGE, ENDING]}
