"""Type systems of other tools, from and to the algebra; each module says what it cannot carry.

A conversion never fails: what the other side lacks becomes its nearest relative, and what the
algebra lacks becomes UNKNOWN with the foreign name.
"""
