"""Into OpenSearch and Elasticsearch.

bulk        what a `_bulk` request says and what its reply means
sink        records to documents, by Confluent's and Aiven's options
"""
