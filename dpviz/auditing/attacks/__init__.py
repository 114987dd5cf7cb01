"""Membership attacks on ordinary rows: one file each over one interface (`base.py`), shadow models and a judge.

`study.py` attacks a run, `halves.py` trains models on random halves of its rows, `judging.py` counts, `allowed.py` says what the
guarantee allows. A new attack is one file with one subclass of `MembershipAttack`; nothing else is edited for it.
"""
