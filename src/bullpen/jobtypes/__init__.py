"""Job types: typed functions that handle jobs, declared once, added by their own signature."""
