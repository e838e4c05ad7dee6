"""Paraphrases of questions, by people or by a model, with the filters of the KQA Pro paper.

`tasks` writes what people work on, `responses` reads what they did, `model_run` asks a model
(`endpoint`, `local`), and `collect` applies `filters` and gives back examples.
"""
