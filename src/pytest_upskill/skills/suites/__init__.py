"""What skills are tested with, in the forms that people have:
one module translates each.
"""
