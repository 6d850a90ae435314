"""The Nexmark benchmark: a live auction house, and questions about it.

    events      people, auctions and bids, 1 : 3 : 46, made from a seed
    records     the same as records of topics, and back as DataFrames
    queries     questions 0, 1, 2, 3, 4, 5, 7, 8, 11 and 12
    closing     question 4's winners: auctions that end, and who had bid most

The proportions and the questions are those of the benchmark's authors (Tucker, Tufte, Papadimos, Maier: "NEXMark, a
benchmark for queries over data streams", 2002), in the shape that stream processors use today.
"""
