"""Conversions between the type system of Lumos and those of other tools.

A conversion never fails: a type that the target lacks becomes its nearest equivalent, and a type
that Lumos lacks becomes UNKNOWN with its original name. Each module lists what it loses.
"""
