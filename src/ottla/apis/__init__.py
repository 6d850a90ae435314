"""What this system does with each of Kafka's APIs: one row an API, and nothing about an API anywhere else.

    description       what a row says
    table             the rows
    error_responses   the response that says that a whole request failed, for any request

`ottla.wire` has the facts of the protocol (keys, versions, messages). A row names functions of parts above this one by
their modules: nothing is imported until the first request of the API comes.
"""
