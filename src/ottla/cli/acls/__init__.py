"""kafka-acls: who may do what.

`acls`         what is asked for, in which order
`acl_options`  its options, and which of them go together
`acl_rules`    the rules that the options stand for
`acl_texts`    rules as they are printed
"""
