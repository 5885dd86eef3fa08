"""Score models beyond the linear: splines, boosted trees and a network, and the choice between them."""
