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
        f"dpviz sweep {_ADULT} --epsilons 0.1:10:9 --out mine-sweep.csv",
    ),
    "calibrate": (
        "dpviz calibrate --mechanism dp-gd --epsilon 1 --n 45222 --d 109",
        "dpviz calibrate --dataset wine --accountants --published",
        "dpviz calibrate --dataset wine --methods --metric accuracy",
    ),
    "influence": ("dpviz influence --dataset breast-cancer --top 5", "dpviz influence --dataset iris --retrain --json"),
    "audit": (
        "dpviz audit --dataset teaching --mechanism output-gaussian --runs 1000",
        "dpviz audit --dataset teaching --pair without --row 17",
        "dpviz audit --dataset teaching --mechanism non-private --membership",
    ),
    "groups": ("dpviz groups --dataset census-10000 --group sex", f"dpviz groups {_ADULT} --group age --cuts 30,50"),
    "release": (
        f"dpviz release {_ADULT} --epsilon 1 --out model",
        "dpviz release --dataset teaching --mechanism output-gaussian --try lam=1e-3,1e-2,1e-1 --out model",
    ),
    "ledger": ("dpviz ledger spent.toml --limit 3 --delta 1e-6 --table mine.csv", "dpviz ledger spent.toml"),
    "predict": ("dpviz predict model new.csv", "dpviz predict model new.csv --json"),
    "report": (
        "dpviz report --dataset wine --page Audit --out audit.html",
        f"dpviz report {_ADULT} --out run.ipynb",
        "dpviz report --all --out site --live https://class.example.org/dpviz/",
    ),
    "show": ("dpviz show mine.csv --target income", "dpviz show mine.csv --write-toml", "dpviz show adult --download"),
    "list": ("dpviz list mechanisms", "dpviz list claims --test all --json"),
}
