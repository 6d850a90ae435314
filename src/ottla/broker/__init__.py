"""What a broker answers: one small module per API or family of APIs, from the decoded request to the reply."""
