"""The files people write: SKILL.md, skill_meta.json, evals.json,
upskill.config.yaml.
"""
