"""The addresses that the named data sets are published at, with the checksums that their publishers quote."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from discreet.data.download import Remote

MNIST_HOSTS = ("https://ossci-datasets.s3.amazonaws.com/mnist/", "http://yann.lecun.com/exdb/mnist/")
FASHION_HOSTS = ("http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",)
CIFAR_HOSTS = ("https://www.cs.toronto.edu/~kriz/",)
SVHN_HOSTS = ("http://ufldl.stanford.edu/housenumbers/",)
IMDB_HOSTS = ("https://ai.stanford.edu/~amaas/data/sentiment/",)
ADULT_HOSTS = ("https://archive.ics.uci.edu/ml/machine-learning-databases/adult/",)


def _remote(
    hosts: tuple[str, ...], filename: str, size: int, checksum: str, unpack: Iterable[str] = ()
) -> Remote:
    addresses = tuple(host + filename for host in hosts)
    return Remote(filename=filename, addresses=addresses, size=size, checksum=checksum, unpack=tuple(unpack))


SOURCES: Mapping[str, tuple[Remote, ...]] = {
    "mnist": (
        _remote(MNIST_HOSTS, "train-images-idx3-ubyte.gz", 9_912_422, "md5:f68b3c2dcbeaaa9fbdd348bbdeb94873"),
        _remote(MNIST_HOSTS, "train-labels-idx1-ubyte.gz", 28_881, "md5:d53e105ee54ea40749a09fcbcd1e9432"),
        _remote(MNIST_HOSTS, "t10k-images-idx3-ubyte.gz", 1_648_877, "md5:9fb629c4189551a2d022fa330f9573f3"),
        _remote(MNIST_HOSTS, "t10k-labels-idx1-ubyte.gz", 4_542, "md5:ec29112dd5afa0611ce80d1b7f02629c"),
    ),
    "fashion-mnist": (
        _remote(
            FASHION_HOSTS, "train-images-idx3-ubyte.gz", 26_421_880, "md5:8d4fb7e6c68d591d4c3dfef9ec88bf0d"
        ),
        _remote(FASHION_HOSTS, "train-labels-idx1-ubyte.gz", 29_515, "md5:25c81989df183df01b3e8a0aad5dffbe"),
        _remote(
            FASHION_HOSTS, "t10k-images-idx3-ubyte.gz", 4_422_102, "md5:bef4ecab320f06d8554ea6380940ec79"
        ),
        _remote(FASHION_HOSTS, "t10k-labels-idx1-ubyte.gz", 5_148, "md5:bb300cfdad3c16e7a12a480ee83cd310"),
    ),
    "cifar-10": (
        _remote(
            CIFAR_HOSTS,
            "cifar-10-binary.tar.gz",
            170_052_171,
            "md5:c32a1d4ab5d03f1284b67883e8d87530",
            unpack=("cifar-10-batches-bin",),
        ),
    ),
    "cifar-100": (
        _remote(
            CIFAR_HOSTS,
            "cifar-100-binary.tar.gz",
            168_513_733,
            "md5:03b5dce01913d631647c71ecec9e9cb8",
            unpack=("cifar-100-binary",),
        ),
    ),
    "svhn": (
        _remote(SVHN_HOSTS, "train_32x32.mat", 182_040_794, "md5:e26dedcc434d2e4c54c9b2d4a06d8373"),
        _remote(SVHN_HOSTS, "test_32x32.mat", 64_275_384, "md5:eb5a983be6a315427106f1b164d9cef3"),
    ),
    "imdb": (
        _remote(
            IMDB_HOSTS,
            "aclImdb_v1.tar.gz",
            84_125_825,
            "md5:7c2ac02c03563afcf9b574c7e56c153a",
            unpack=[f"aclImdb/{split}/{kind}" for split in ("train", "test") for kind in ("neg", "pos")],
        ),
    ),
    "adult": (
        _remote(
            ADULT_HOSTS,
            "adult.data",
            3_974_305,
            "sha256:5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
        ),
        _remote(
            ADULT_HOSTS,
            "adult.test",
            2_003_153,
            "sha256:a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
        ),
    ),
}
