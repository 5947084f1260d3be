"""Agents: who carries out a case with tools, the sandbox it works in,
the gateway to its model.
"""
