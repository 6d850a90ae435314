"""What a client knows of the cluster, and how it asks its brokers.

cluster         metadata kept fresh; asking one broker, any, or the controller
view            brokers, topics and leaders at one moment
coordinators    who coordinates a group or a transactional id
application_callbacks   errors and statistics on their way to callbacks of the application's
addresses       where to begin
"""
