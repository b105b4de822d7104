"""What an event can be and what a subscriber can ask for: schema, event, filter and the boxes it means.

The first folder of the flow: filter text ─▶ boxes, and files ─▶ arrays. Everything after it works on
numbers.
"""
