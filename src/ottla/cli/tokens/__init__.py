"""kafka-delegation-tokens: proof of who somebody is, to be given to others for a while (KIP-48).

`delegation_tokens`  what is asked for, and what is printed
`token_options`      its options, and which of them go together
"""
