"""The verbs of this store by family, as `bullpen.stores.verbs` has them."""
