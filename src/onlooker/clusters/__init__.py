"""Past one machine: logs in the memory of a Ray cluster's workers. Ray itself is an extra, `onlooker[ray]`."""

from onlooker.clusters.ray_parts import RayParts

__all__ = ["RayParts"]
