"""The main demo: a live auction house on a node, and a Spark pipeline over it that is killed and recovers.

demo            the story, from start to the check
settings        how much, how fast, where
auction_house   events as they happen, to three topics
pipeline        the Spark job, in a process of its own: `python -m ottla.spark.demo.pipeline`
job             that process, as the demo sees it: started, killed, listened to
answers         what the pipeline has written, as a reader of committed records sees it
expected        what it must have written, computed directly from the events
failures        why a query ended, in Python's words
screen          a live table on a terminal, and plain lines elsewhere
"""
