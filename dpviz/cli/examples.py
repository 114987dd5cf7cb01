"""Examples in the help of every command; a test parses each of them."""

_ADULT: str = 'mine.csv --target income --positive ">50K" --range age=17,90'

EXAMPLES: dict[str, tuple[str, ...]] = {
    "app": ("dpviz", "dpviz app --port 8600 --no-browser", "dpviz app --host 0.0.0.0 --allow-host dp.example.org"),
    "run": (
        "dpviz run --dataset breast-cancer --mechanism dp-gd --epsilon 1 --set steps=50",
        f"dpviz run {_ADULT} --metric roc-auc",
        "dpviz run 'http://127.0.0.1:8501/?dataset=wine&epsilon=0.5' --json",
    ),
    "sweep": (
        "dpviz sweep --dataset breast-cancer --mechanisms dp-gd,objective-tight --epsilons 0.1,1,10 --out sweep.csv",
        "dpviz sweep spec.toml --jobs -1 --out sweep.parquet",
        f"dpviz sweep {_ADULT} --from 0.1 --to 10 --points 9 --out mine-sweep.csv",
    ),
    "calibrate": ("dpviz calibrate --mechanism dp-gd --epsilon 1 --n 45222 --d 109", f"dpviz calibrate {_ADULT}"),
    "accounting": ("dpviz accounting --dataset wine --mechanism dp-gd --epsilon 1", "dpviz accounting --published"),
    "guarantees": ("dpviz guarantees --dataset wine --epsilon 1", "dpviz guarantees --dataset wine --metric accuracy"),
    "influence": ("dpviz influence --dataset breast-cancer --top 5", "dpviz influence --dataset iris --retrain --json"),
    "audit": (
        "dpviz audit --dataset teaching --mechanism output-gaussian --runs 1000",
        "dpviz audit --dataset teaching --pair without --row 17",
    ),
    "attack": ("dpviz attack --dataset teaching --mechanism non-private",),
    "groups": ("dpviz groups --dataset census-10000 --group sex", f"dpviz groups {_ADULT} --group age --cuts 30,50"),
    "claims": ("dpviz claims", "dpviz claims all --json"),
    "ranges": ("dpviz ranges mine.csv --columns age,hours --epsilon 0.5 --delta 1e-6",),
    "release": (f"dpviz release {_ADULT} --epsilon 1 --out model",),
    "tune": ("dpviz tune --dataset teaching --mechanism output-gaussian --try lam=1e-3,1e-2,1e-1 --out model",),
    "ledger": ("dpviz ledger spent.toml --limit 3 --delta 1e-6 --table mine.csv", "dpviz ledger spent.toml"),
    "predict": ("dpviz predict model new.csv", "dpviz predict model new.csv --json"),
    "report": ("dpviz report --dataset wine --page Audit --out audit.html", f"dpviz report {_ADULT} --out run.ipynb"),
    "gallery": ("dpviz gallery --out site --live https://class.example.org/dpviz/",),
    "datasets": ("dpviz datasets", "dpviz datasets mine.csv --target income", "dpviz datasets mine.csv --write-toml"),
    "fetch": ("dpviz fetch adult",),
    "mechanisms": ("dpviz mechanisms", "dpviz mechanisms --json"),
}
