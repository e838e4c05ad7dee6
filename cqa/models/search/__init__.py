"""Search for the best assignments of a query over the rows of a link predictor."""
