"""Every encoder is a well-behaved scikit-learn transformer."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from losse import FourierEncoder, LosseEncoder, ReLUEncoder, TileEncoder


@parametrize_with_checks([LosseEncoder(), FourierEncoder(), ReLUEncoder(), TileEncoder()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)
